// Package vendorc adapts vendor C, the visual service of Volcengine (Jimeng): its video jobs and its V4 signature. Of the product it must
// import only providers and its sub-packages.
//
// Wire facts: github.com/volcengine/volc-sdk-golang v1.0.253 (base/sign.go, service/visual) and the vendor's pages on
// video generation 3.0 (volcengine.com/docs/85621/1777001 and related pages), on common errors of the service
// (docs/6444/69728) and of the gate in front of it (docs/6369/68677).
package vendorc
