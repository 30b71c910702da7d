// Package architecture holds the test that keeps the house in order: which package may import which, and that each
// says in its head comment what it is for.
//
// The packages of the module come in, as go list sees them; a failed test with the broken rule in words goes out. It
// has nothing to import, and must never hold anything else.
package architecture
