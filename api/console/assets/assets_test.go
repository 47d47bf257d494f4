package assets

import (
	"strings"
	"testing"
)

// TestAssetsAreSmall: the assets that every page loads have a size limit.
func TestAssetsAreSmall(t *testing.T) {
	t.Parallel()
	a := Load()
	scripts := 0
	for name, found := range a.byName {
		if strings.HasSuffix(name, ".js") {
			scripts += len(found.packed)
		}
		for _, sink := range []string{
			"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser",
			"srcdoc",
		} {
			if strings.Contains(string(found.plain), sink) {
				t.Errorf("%s: uses %s, which makes something of a text", name, sink)
			}
		}
	}
	t.Logf("app.js %d bytes, all scripts %d, css %d, packed", len(a.byName["app.js"].packed), scripts, len(a.byName["console.css"].packed))
	if app, css := len(a.byName["app.js"].packed), len(a.byName["console.css"].packed); app > 10<<10 || css > 10<<10 || scripts > 30<<10 {
		t.Errorf("app.js %d bytes, all scripts %d, css %d: want 10 KiB, 30 KiB and 10 KiB at most", app, scripts, css)
	}
}
