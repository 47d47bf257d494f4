package chat_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the tests got into their golden files")

// golden runs a test over each file of a folder in testdata. The first line of a file names the source of its wire facts,
// and sections behind lines such as "-- in --"; the section out is what run is to return.
func golden(t *testing.T, folder string, run func(t *testing.T, sections map[string]string) string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			before, want, found := strings.Cut(string(content), "-- out --\n")
			if !strings.HasPrefix(before, "# ") {
				t.Fatal("the first line does not say where this comes from")
			}
			if !found && !*update {
				t.Fatal("no section out")
			}
			got := strings.TrimRight(run(t, sections(before)), "\n") + "\n"
			if *update {
				if err := os.WriteFile(file, []byte(before+"-- out --\n"+got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func sections(text string) map[string]string {
	found := make(map[string]string)
	name := ""
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok && strings.HasSuffix(rest, " --") {
			name = strings.TrimSuffix(rest, " --")
			continue
		}
		found[name] += line
	}
	return found
}

// dump shows what is set in a value, raw JSON as it is.
func dump(value any) string {
	var out strings.Builder
	dumpValue(&out, "", reflect.ValueOf(value))
	return out.String()
}

func dumpValue(out *strings.Builder, name string, v reflect.Value) {
	switch {
	case v.IsZero():
		return
	case v.Kind() == reflect.Pointer:
		if v.Elem().IsZero() {
			fmt.Fprintf(out, "%s: %v\n", name, v.Elem())
			return
		}
		dumpValue(out, name, v.Elem())
	case v.Type().Name() == "FieldNames":
		fmt.Fprintf(out, "%s: %s\n", name, strings.Join(strings.Fields(strings.Trim(fmt.Sprint(v), "[]")), " "))
	case v.Type().Name() == "Path":
		fmt.Fprintf(out, "%s: %s\n", name, v.Interface())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				dumpValue(out, strings.TrimPrefix(name+"."+v.Type().Field(i).Name, "."), v.Field(i))
			}
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		fmt.Fprintf(out, "%s: %s\n", name, v.Bytes())
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		for i := range v.Len() {
			if v.Index(i).IsZero() && v.Kind() == reflect.Slice {
				fmt.Fprintf(out, "%s[%d]: zero\n", name, i)
			}
			dumpValue(out, fmt.Sprintf("%s[%d]", name, i), v.Index(i))
		}
	default:
		fmt.Fprintf(out, "%s: %v\n", name, v)
	}
}

// golden1 is the longest call of the testdata.
func golden1(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "trip", "agent.txt"))
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(content), "-- out --\n")
	return sections(before)["in"]
}
