package templates

import (
	"strings"

	"github.com/limpet-gateway/limpet/controller/model"
	"github.com/limpet-gateway/limpet/dataplane/files"
	"github.com/limpet-gateway/limpet/internal/originator"
	"github.com/limpet-gateway/limpet/internal/table"
)

// KeysFile is the asset that holds the keys: configuration too, but apart so that the rest can be shown.
const KeysFile = "keys.cfg"

// assets are those that the frame alone decides.
func (r *Renderer) assets(in frameInput) (table.Table[files.Asset], error) {
	edit := table.Table[files.Asset]{}.Edit()
	for name, text := range luaFiles() {
		edit.Set(name, files.Asset{Text: text})
	}
	w := &sectionWriter{templates: r.templates}
	edit.Set(KeysFile, files.Asset{Text: w.run("keys", r.settings.SignKeys), Secret: true})
	for _, port := range in.frame.Ports {
		for _, server := range port.Servers {
			if server.Mode == model.Passthrough {
				continue
			}
			var list strings.Builder
			for _, certificate := range server.Certificates {
				list.WriteString(certificateFile(certificate) + "\n")
			}
			edit.Set(listFile(server), files.Asset{Owner: string(server.Owner), Text: list.String()})
		}
	}
	return edit.Table(), w.err
}

// credentials brings the certificates and authorities among the assets up to date.
func credentials(assets table.Table[files.Asset], is, was model.Config) table.Table[files.Asset] {
	edit := assets.Edit()
	for change := range is.Certificates.Diff(was.Certificates) {
		if !change.HasNew {
			edit.Delete(certificateFile(change.Key))
			continue
		}
		edit.Set(certificateFile(change.Key), files.Asset{Owner: string(change.New.Owner), Text: change.New.PEM, Secret: true})
	}
	for change := range is.Authorities.Diff(was.Authorities) {
		if !change.HasNew {
			edit.Delete(authorityFile(change.Key))
			continue
		}
		edit.Set(authorityFile(change.Key), files.Asset{Owner: string(change.New.Owner), Text: change.New.PEM})
	}
	return edit.Table()
}

// origins brings what the TLS originator is told up to date: few backends have it, so that all of them are looked at.
func origins(assets table.Table[files.Asset], was, d *data, config model.Config) table.Table[files.Asset] {
	edit := assets.Edit()
	for id := range was.origins {
		edit.Delete(originator.FileName(id))
	}
	for id, backend := range d.origins {
		if asset, complete := origin(backend, config); complete {
			edit.Set(originator.FileName(id), asset)
		}
	}
	return edit.Table()
}

func listFile(server model.TLSServer) string { return "lists/" + server.ID + ".list" }

func certificateFile(id string) string { return "certs/" + id + ".pem" }

func authorityFile(id string) string { return "cas/" + id + ".pem" }
