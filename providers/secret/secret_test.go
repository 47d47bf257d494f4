package secret_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"modelrelay/providers/secret"
)

// TestSecretHidesFromEveryVerb: a verb that does not fit a string prints the value behind String's back.
func TestSecretHidesFromEveryVerb(t *testing.T) {
	t.Parallel()
	const text = "sk-upstream-1"
	hidden := secret.Text(text)
	hexed := fmt.Sprintf("%x", text)
	for verb := 'A'; verb <= 'z'; verb++ {
		// fmt handles p and w before it calls any method. go vet refuses both verbs for a string.
		if verb > 'Z' && verb < 'a' || verb == 'p' || verb == 'w' {
			continue
		}
		for _, flags := range []string{"", "+", "#", "020"} {
			format := "%" + flags + string(verb)
			for _, shown := range []any{
				hidden, &hidden,
				[]secret.Text{hidden},
				map[string]secret.Text{"k": hidden},
				struct{ Key secret.Text }{hidden},
			} {
				if got := fmt.Sprintf(format, shown); strings.Contains(got, text) || strings.Contains(strings.ToLower(got), hexed) {
					t.Errorf("%s of %T shows %s", format, shown, got)
				}
			}
		}
	}
	if got, err := hidden.MarshalText(); err != nil || string(got) != "***" {
		t.Errorf("got text %q, %v", got, err)
	}
	if got := errors.Join(fmt.Errorf("refused %w with %s", errors.New("x"), hidden)).Error(); got != "refused x with ***" {
		t.Errorf("got %q", got)
	}
	if got := fmt.Sprint(secret.Text("")); got != "***" {
		t.Errorf("got %q: an empty secret looks like any other", got)
	}
}

// TestSecretHidesFromEveryEncoder: alone, behind a pointer and within other values.
func TestSecretHidesFromEveryEncoder(t *testing.T) {
	t.Parallel()
	const text = "sk-upstream-1"
	hidden := secret.Text(text)
	type document struct {
		Key     secret.Text   `json:"key" xml:"key" yaml:"key"`
		Pointer *secret.Text  `json:"pointer" xml:"pointer" yaml:"pointer"`
		List    []secret.Text `json:"list" xml:"list" yaml:"list"`
	}
	shown := document{Key: hidden, Pointer: &hidden, List: []secret.Text{hidden}}
	log := func(handler func(io.Writer, *slog.HandlerOptions) slog.Handler) func(any) ([]byte, error) {
		return func(v any) ([]byte, error) {
			var out bytes.Buffer
			slog.New(handler(&out, nil)).Info("x", "secret", hidden, "document", v, slog.Group("group", "key", &hidden))
			return out.Bytes(), nil
		}
	}
	for name, encode := range map[string]func(any) ([]byte, error){
		"json": json.Marshal, "xml": xml.Marshal, "yaml": yaml.Marshal,
		"slog json": log(func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewJSONHandler(w, o) }),
		"slog text": log(func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewTextHandler(w, o) }),
	} {
		if got, err := encode(shown); err != nil || strings.Contains(string(got), text) || !strings.Contains(string(got), "***") {
			t.Errorf("%s shows %s, %v", name, got, err)
		}
	}
}

// TestFingerprint: it is the same everywhere and always, because tickets in histories remember it.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	// The first twelve hexadecimal digits of the SHA-256 of "abc", as FIPS 180-2 lists it.
	if got := secret.Text("abc").Fingerprint(); got != "ba7816bf8f01" {
		t.Errorf("got %q", got)
	}
}

// TestNoMapHasSecretKeys: encoding/json would write them in clear, and no lint rule checks the type of a map's key.
func TestNoMapHasSecretKeys(t *testing.T) {
	t.Parallel()
	secretKey := func(n ast.Node) bool {
		key, ok := n.(*ast.MapType)
		if !ok {
			return false
		}
		return slices.Contains([]string{"secret.Text", "providers.Secret", "Secret"}, types.ExprString(key.Key))
	}
	if found, err := parser.ParseExpr("map[secret.Text]int{}"); err != nil || !secretKey(found.(*ast.CompositeLit).Type) {
		t.Fatalf("the check does not see %#v: %v", found, err)
	}
	root := filepath.Join("..", "..")
	files := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "dev" || entry.Name() == "testdata" || path != root && strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for n := range ast.Preorder(file) {
			if secretKey(n) {
				t.Errorf("%s: a map has secrets as keys", set.Position(n.Pos()))
			}
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("read %d files: %v", files, err)
	}
}
