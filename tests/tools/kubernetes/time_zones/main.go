// Prints the time zones of Go's own copy of the time zone database, one a line:
//
//	go run ./time_zones >../../../src/apiserver/data/time.zones   (in tests/tools/kubernetes)
//
// The format is told in src/apiserver/time_zones.h.
package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"time"
)

// What was before is told as the first offset alone.
var first = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// A zone in a file of TZif version 2 or later: the second block counts in 64 bits, and a rule follows it.
func parse(data []byte) string {
	header := func(at int) [6]int {
		var counts [6]int // isutc, isstd, leap, time, type, char
		for i := range counts {
			counts[i] = int(binary.BigEndian.Uint32(data[at+20+4*i:]))
		}
		return counts
	}
	if string(data[:4]) != "TZif" || data[4] < '2' {
		panic("not a TZif file of version 2")
	}
	old := header(0)
	at := 44 + old[3]*5 + old[4]*6 + old[5] + old[2]*8 + old[1] + old[0]
	counts := header(at)
	at += 44
	times := data[at:]
	kinds := times[8*counts[3]:]
	types := kinds[counts[3]:]
	rule := data[at+counts[3]*9+counts[4]*6+counts[5]+counts[2]*12+counts[1]+counts[0]:]
	offset := func(kind byte) int32 { return int32(binary.BigEndian.Uint32(types[6*int(kind):])) }
	// As time.Location does it, the first zone is the first standard one where the first of all is not in use.
	before := offset(0)
	var out strings.Builder
	fmt.Fprintf(&out, " %s", strings.Trim(string(rule), "\n"))
	last := int64(0)
	var changes []string
	for i := 0; i < counts[3]; i++ {
		when := int64(binary.BigEndian.Uint64(times[8*i:]))
		if when <= first {
			before = offset(kinds[i])
			continue
		}
		changes = append(changes, fmt.Sprintf(" %d:%d", (when-last)/60, offset(kinds[i])/60))
		if when%60 != 0 || offset(kinds[i])%60 != 0 {
			panic("a zone with seconds")
		}
		last = when
	}
	fmt.Fprintf(&out, " %d%s", before/60, strings.Join(changes, ""))
	return out.String()
}

func main() {
	archive, err := zip.OpenReader(filepath.Join(runtime.GOROOT(), "lib/time/zoneinfo.zip"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	names := map[string][]string{}
	for _, file := range archive.File {
		if strings.HasSuffix(file.Name, "/") {
			continue
		}
		reader, err := file.Open()
		if err != nil {
			panic(err)
		}
		var data bytes.Buffer
		if _, err := io.Copy(&data, reader); err != nil {
			panic(err)
		}
		zone := parse(data.Bytes())
		names[zone] = append(names[zone], file.Name)
	}
	var lines []string
	for zone, all := range names {
		sort.Strings(all)
		lines = append(lines, strings.Join(all, ",")+zone)
	}
	sort.Strings(lines)
	fmt.Println(strings.Join(lines, "\n"))
}
