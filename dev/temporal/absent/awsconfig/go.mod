// This module replaces github.com/aws/aws-sdk-go-v2/config in the development stack. Temporal's server imports it to archive workflows
// in S3 and to sign requests to Elasticsearch, which are switched off there. The module is compiled only as a part of the module dev.
module github.com/aws/aws-sdk-go-v2/config

go 1.26.8
