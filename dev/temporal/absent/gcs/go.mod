// This module replaces cloud.google.com/go/storage in the development stack. Temporal's server imports it to archive workflows in
// Google Cloud Storage, which is switched off there. The original imports gRPC's xDS with Envoy's API, and much of Google's client
// libraries: 260 packages. The module is compiled only as a part of the module dev.
module cloud.google.com/go/storage

go 1.26.8
