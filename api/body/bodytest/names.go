// Package bodytest has a test that the checks of each format's bodies must pass.
package bodytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"modelrelay/api/body"
)

// FuzzNames checks that in an accepted body, encoding/json reads the same values of the contract's fields as the gateway. checkers is by
// operation.
func FuzzNames(f *testing.F, checkers map[string]*body.Checker) {
	f.Helper()
	for _, seed := range []string{
		`{"model":"m","messages":[],"Model":"n"}`, `{"MODEL":"n","model":"m","messages":[]}`, `{"model":"m","messages":[],"ſtream":true}`,
		`{"model":"m","messages":[],"max_to\u212aens":1}`, `{"\u006dodel":"m","messages":[],"x":1}`, `{"model":"m","model":"n"}`,
		`{"contents":[],"generationConfig":{"a":1},"generation_config":{}}`, `{"generation_config":{"x":[null]},"contents":[]}`,
		`{"prompt":"p","Seconds":"8","duration":1}`, `{"prompt":null,"ſeconds":1,"frame\u017f":2}`, `{"req_key":"a","Req_Key":"b"}`,
		`{"model":"m","input":{"messages":[]},"inPut":1}`, `{"model":"m","max_tokens":1,"messages":[]}`, `{"mode\u017fl":1,"":2,"\ud800":3}`,
	} {
		f.Add([]byte(seed))
	}
	structs := make(map[string]reflect.Type)
	for operation, checker := range checkers {
		var fields []reflect.StructField
		for i, name := range checker.Names() {
			fields = append(fields, reflect.StructField{
				Name: fmt.Sprint("F", i), Type: reflect.TypeFor[json.RawMessage](), Tag: reflect.StructTag(`json:"` + name + `"`),
			})
		}
		structs[operation] = reflect.StructOf(fields)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for operation, checker := range checkers {
			b, err := checker.Check(raw)
			if err != nil {
				continue
			}
			read := reflect.New(structs[operation])
			if err := json.Unmarshal(raw, read.Interface()); err != nil {
				if strings.Contains(err.Error(), "exceeded max depth") {
					continue
				}
				t.Fatalf("%s: %q is accepted, but encoding/json says %v", operation, raw, err)
			}
			for i, name := range checker.Names() {
				got, _ := reflect.TypeAssert[json.RawMessage](read.Elem().Field(i))
				if string(got) == "null" {
					got = nil
				}
				want := b.Value(name)
				if bytes.Equal(got, want) || got == nil && operation == "gemini" && strings.ToLower(name) != name { // the value has the snake case name
					continue
				}
				t.Errorf("%s: of %q encoding/json reads %s as %q, the check as %q", operation, raw, name, got, want)
			}
		}
	})
}
