package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

// assets are the files that pages load, in memory, plain and packed. Their folder is named by the hash of all of them, so
// that a browser may keep them for ever and modules find one another by plain names.
type assets struct {
	folder string // below Root/assets/
	files  map[string]asset
}

type asset struct {
	contentType   string
	plain, packed []byte
}

func loadAssets() *assets {
	a := &assets{files: make(map[string]asset)}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic("console: " + err.Error()) // they are part of the program
	}
	sum := sha256.New()
	for _, entry := range entries { // sorted by name
		content, err := assetFiles.ReadFile("assets/" + entry.Name())
		if err != nil {
			panic("console: " + err.Error())
		}
		sum.Write([]byte(entry.Name() + "\x00" + strconv.Itoa(len(content)) + "\x00"))
		sum.Write(content)
		a.files[entry.Name()] = asset{contentType: contentType(entry.Name()), plain: content, packed: pack(content, gzip.BestCompression)}
	}
	a.folder = hex.EncodeToString(sum.Sum(nil))[:12]
	return a
}

// contentType is by the name alone: what the machine's own table says must not matter.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return mime.TypeByExtension(path.Ext(name))
	}
}

func pack(content []byte, level int) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, level) // the level is one that there is
	_, _ = w.Write(content)                  // into memory
	_ = w.Close()
	return out.Bytes()
}

// serve answers with a file, whose address holds what it contains.
func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	folder, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, Root+"/assets/"), "/")
	file, ok := a.files[name]
	if folder != a.folder || !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Content-Type", file.contentType)
	h["Vary"] = []string{"Accept-Encoding"}
	content := file.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		content = file.packed
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // a browser that is gone needs no answer
}
