{{/* What Limpet needs in every namespace whose objects it reads. Reading Secrets and ConfigMaps: it watches their
     metadata, and gets those that some Gateway, ListenerSet, XBackend or policy names. */}}
{{- define "limpet.namespacedRules" -}}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways, listenersets, httproutes, grpcroutes, tlsroutes, tcproutes, backendtlspolicies, referencegrants]
  verbs: [get, list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways/status, listenersets/status, httproutes/status, grpcroutes/status, tlsroutes/status, tcproutes/status, backendtlspolicies/status]
  verbs: [update, patch]
- apiGroups: [gateway.networking.x-k8s.io]
  resources: [xbackends]
  verbs: [get, list, watch]
- apiGroups: [gateway.networking.x-k8s.io]
  resources: [xbackends/status]
  verbs: [update, patch]
- apiGroups: [limpet.dev]
  resources: [limpetparameters]
  verbs: [get, list, watch]
# The Services of Gateways and XBackends, and where they lead.
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [""]
  resources: [secrets, configmaps, pods]
  verbs: [get, list, watch]
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{/* What it needs of objects that are in no namespace. */}}
{{- define "limpet.clusterRules" -}}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gatewayclasses]
  verbs: [get, list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gatewayclasses/status]
  verbs: [update, patch]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch]
{{- end }}

{{/* What it needs in its own namespace: keys, ports, leader election, and its own pods. Creating cannot be narrowed to
     a name. */}}
{{- define "limpet.ownRules" -}}
# Parameters of GatewayClasses.
- apiGroups: [limpet.dev]
  resources: [limpetparameters]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ include "limpet.fullname" . }}-keys]
  verbs: [get, list, watch, update, patch]
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ include "limpet.fullname" . }}-ports]
  verbs: [get, list, watch, update, patch]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "limpet.fullname" . }}]
  verbs: [get, update, patch]
- apiGroups: [""]
  resources: [secrets, configmaps]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}
