// This module replaces github.com/aws/aws-sdk-go-v2/service/s3 in the development stack. Temporal's server imports it to archive
// workflows in S3, which is switched off there. The module is compiled only as a part of the module dev.
module github.com/aws/aws-sdk-go-v2/service/s3

go 1.26.8
