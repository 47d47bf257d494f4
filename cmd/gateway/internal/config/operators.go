package config

import (
	"slices"

	"modelrelay/providers"
)

// AdminName is the name of the operator with the key admin_key.
const AdminName = "admin"

// roleOperator is the role with all rights.
const roleOperator = "operator"

const maxOperatorName = 64

// checkOperators checks the list of operators. Each key must belong to one operator or token only.
func checkOperators(v *validator, c Config) {
	for i, operator := range c.Operators {
		at := key("operators", i)
		switch {
		case len(operator.Name) > maxOperatorName:
			v.add(at+".name", "is longer than %d bytes", maxOperatorName)
		case !providers.Plain(operator.Name):
			v.add(at+".name", "contains a control character")
		case operator.Name == AdminName:
			v.add(at+".name", "is the name of the operator of admin_key")
		case slices.Contains([]string{"cli", "file", "console"}, operator.Name): // which stand for others in the audit log
			v.add(at+".name", "%q is reserved", operator.Name)
		}
		checkTokenKey(v, at+".key", operator.Key.Reveal())
		if given := operator.Key; given != "" {
			if given == c.AdminKey {
				v.add(at+".key", "is the same as admin_key")
			}
			if same := slices.IndexFunc(c.Tokens, func(t Token) bool { return t.Key == given }); same >= 0 {
				v.add(at+".key", "is the same as %s.key", key("tokens", same))
			}
		}
	}
	v.unique("operators", "name", len(c.Operators), func(i int) string { return c.Operators[i].Name })
	v.unique("operators", "key", len(c.Operators), func(i int) string { return c.Operators[i].Key.Reveal() })
}

// AllOperators returns the operators of the gateway, first the one with admin_key.
func (c Config) AllOperators() []Operator {
	if c.AdminKey == "" {
		return c.Operators
	}
	return slices.Concat([]Operator{{Name: AdminName, Key: c.AdminKey, Role: roleOperator}}, c.Operators)
}
