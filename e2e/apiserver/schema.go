package apiserver

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// customSchema is what a CustomResourceDefinition says of the form of its objects. The code that reads it is the API server's own.
type customSchema struct {
	structural *structural.Structural
	form       validation.SchemaValidator
	rules      *cel.Validator
}

// customKind is the kind that a CustomResourceDefinition defines, with the schema of the version that is stored.
func customKind(crd *apiextensionsv1.CustomResourceDefinition) (*kind, error) {
	k := &kind{
		group: crd.Spec.Group, name: crd.Spec.Names.Kind, plural: crd.Spec.Names.Plural,
		clusterScoped: crd.Spec.Scope == apiextensionsv1.ClusterScoped,
	}
	for _, version := range crd.Spec.Versions {
		if version.Served {
			k.versions = append(k.versions, version.Name)
		}
		if !version.Storage {
			continue
		}
		var err error
		if k.schema, err = newSchema(version.Schema); err != nil {
			return nil, fmt.Errorf("CustomResourceDefinition %s: %w", crd.Name, err)
		}
	}
	return k, nil
}

func newSchema(from *apiextensionsv1.CustomResourceValidation) (*customSchema, error) {
	internal := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(from, internal, nil); err != nil {
		return nil, err
	}
	s := &customSchema{}
	var err error
	if s.structural, err = structural.NewStructural(internal.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	if s.form, _, err = validation.NewSchemaValidator(internal.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	return s, nil
}

// complete drops fields that are not in the schema, and fills in its defaults.
func (s *customSchema) complete(content map[string]any) {
	pruning.Prune(content, s.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(content, s.structural)
	defaulting.Default(content, s.structural)
}

// validate says what is wrong with an object; old is nil for a new one.
func (s *customSchema) validate(content, old map[string]any) field.ErrorList {
	var before any
	errs := validation.ValidateCustomResource(nil, content, s.form)
	if old != nil {
		before = old
		errs = validation.ValidateCustomResourceUpdate(nil, content, old, s.form)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, content)...)
	if len(errs) == 0 && s.rules != nil {
		more, _ := s.rules.Validate(context.Background(), nil, s.structural, content, before, celconfig.RuntimeCELCostBudget)
		errs = append(errs, more...)
	}
	return errs
}
