// This module replaces google.golang.org/api in the development stack: the two packages that the archiver for Google Cloud Storage
// imports. The archiver is switched off there. The module is compiled only as a part of the module dev.
module google.golang.org/api

go 1.26.8
