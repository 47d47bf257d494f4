// Package config has the functions that read the configuration of AWS. They return an error.
package config

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
)

var errAbsent = errors.New("the development server has no clients of AWS")

// LoadOptions are the options of [LoadDefaultConfig].
type LoadOptions struct{}

// LoadOptionsFunc sets an option.
type LoadOptionsFunc = func(*LoadOptions) error

// LoadDefaultConfig returns an error.
func LoadDefaultConfig(context.Context, ...LoadOptionsFunc) (aws.Config, error) {
	return aws.Config{}, errAbsent
}

// WithRegion sets nothing.
func WithRegion(string) LoadOptionsFunc { return nil }

// WithClientLogMode sets nothing.
func WithClientLogMode(aws.ClientLogMode) LoadOptionsFunc { return nil }

// EnvConfig is the configuration in the environment.
type EnvConfig struct{ Credentials aws.Credentials }

// NewEnvConfig returns an error.
func NewEnvConfig() (EnvConfig, error) { return EnvConfig{}, errAbsent }
