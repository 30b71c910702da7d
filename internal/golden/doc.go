// Package golden tests the pipeline from objects to files: each case is a folder named as a sentence, with the objects that
// go in and the model, the status and HAProxy's files that come out.
//
// `go test -update` rewrites what comes out; reviewing it means reading the difference. Every configuration is checked by a
// real HAProxy. It must never hold a case that nobody can read.
package golden
