// Package assets has the files that the console's pages load: a style sheet, modules and an icon.
package assets

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed *.css *.js *.svg
var embedded embed.FS

// Files holds all assets in memory, plain and compressed. The name of their folder is the hash of all of them, so a browser may cache them
// permanently, and modules import one another by plain names.
type Files struct {
	folder string
	byName map[string]file
}

type file struct {
	contentType   string
	plain, packed []byte
}

// Load reads the embedded files. It panics if they cannot be read.
func Load() *Files {
	a := &Files{byName: make(map[string]file)}
	entries, err := embedded.ReadDir(".")
	if err != nil {
		panic("console: " + err.Error()) // they are part of the program
	}
	sum := sha256.New()
	for _, entry := range entries { // sorted by name
		content, err := embedded.ReadFile(entry.Name())
		if err != nil {
			panic("console: " + err.Error())
		}
		sum.Write([]byte(entry.Name() + "\x00" + strconv.Itoa(len(content)) + "\x00"))
		sum.Write(content)
		a.byName[entry.Name()] = file{contentType: contentType(entry.Name()), plain: content, packed: Pack(content, gzip.BestCompression)}
	}
	a.folder = hex.EncodeToString(sum.Sum(nil))[:12]
	return a
}

// contentType depends only on the name, not on the MIME table of the machine.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	default:
		return "image/svg+xml"
	}
}

// Pack returns the content in gzip at a level.
func Pack(content []byte, level int) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, level) // the level is valid
	_, _ = w.Write(content)                  // into memory
	_ = w.Close()
	return out.Bytes()
}

// Folder returns the name of the folder of all assets.
func (a *Files) Folder() string { return a.folder }

// ServeHTTP serves the path folder/name. The folder is a hash of the content.
func (a *Files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	folder, name, _ := strings.Cut(r.URL.Path, "/")
	found, ok := a.byName[name]
	if folder != a.folder || !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Content-Type", found.contentType)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox") // it is not a page
	h["Vary"] = []string{"Accept-Encoding"}
	content := found.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		content = found.packed
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // the browser may have left
}
