// Stacks that are known by construction, in Go: stacks SECONDS. Under burnRec there are exactly 31 frames of rec.
package main

import (
	"os"
	"sort"
	"strconv"
	"sync"
	"time"
)

var sink uint64

//go:noinline
func burnRec(n uint64) uint64 {
	for i := uint64(0); i < 6000; i++ {
		n ^= n<<1 + i
	}
	return n
}

//go:noinline
func rec(depth int) uint64 {
	var r uint64
	if depth == 0 {
		r = burnRec(3)
	} else {
		r = rec(depth - 1)
	}
	return r + 1
}

//go:noinline
func library() int {
	v := make([]string, 200)
	for i := range v {
		v[i] = strconv.Itoa(i * 7919 % 211)
	}
	sort.Slice(v, func(a, b int) bool { return v[a] > v[b] })
	m := map[string]int{}
	for _, s := range v {
		m[s] += len(s)
	}
	return len(m)
}

//go:noinline
func panics(depth int) {
	defer func() { burnRec(uint64(depth)) }()
	if depth == 0 {
		panic("in flight")
	}
	panics(depth - 1)
}

func catches() {
	defer func() { _ = recover() }()
	panics(4)
}

//go:noinline
func work(end time.Time) uint64 {
	var x uint64
	for time.Now().Before(end) {
		x += rec(30)
		x += uint64(library())
		catches()
	}
	return x
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		panic(err)
	}
	end := time.Now().Add(time.Duration(seconds * 1e9))
	var group sync.WaitGroup
	group.Add(1)
	go func() { sink += work(end); group.Done() }()
	x := work(end)
	group.Wait()
	os.Exit(int((x + sink) & 0))
}
