// Inlined functions of several kinds, in Go, for tests of names and lines: methods, calls in calls, generic functions,
// closures, and the sort that the library inlines.
package main

import (
	"os"
	"sort"
	"strconv"
)

type pair struct{ a, b int }

func (p *pair) sum() int         { return p.a + p.b }
func (p *pair) scaled(n int) int { return p.sum()*n + leaf(n) }

func leaf(x int) int   { return x*3 + 1 }
func middle(x int) int { return leaf(x) + leaf(x+1) }
func outer(x int) int  { return middle(x)*leaf(x) - middle(x+2) }

type number interface{ ~int | ~float64 }

func add[V number](a, b V) V { return a + b }

//go:noinline
func total[V number](values []V) (sum V) {
	for _, value := range values {
		sum = add(sum, value)
	}
	return
}

type byLast []pair

func (p byLast) Len() int           { return len(p) }
func (p byLast) Less(i, j int) bool { return p[i].b < p[j].b }
func (p byLast) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }

func main() {
	n := len(os.Args)
	pairs := byLast{{n, outer(n)}, {2, middle(n)}, {3, leaf(n)}}
	sort.Sort(pairs)
	apply := func(f func(int) int) int { return f(n) + outer(pairs[0].a) }
	values := []int{apply(leaf), pairs[0].scaled(n), pairs[1].sum()}
	os.Stdout.WriteString(strconv.Itoa(total(values)) + strconv.FormatFloat(total([]float64{1, float64(n)}), 'g', -1, 64) + "\n")
}
