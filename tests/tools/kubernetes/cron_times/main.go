// Prints when schedules run, as the library of the CronJob controller finds it:
//
//	go run ./cron_times >../../../src/apiserver/testdata/cron_times.golden   (in tests/tools/kubernetes)
//
// One case a line: SCHEDULE | ZONE | FROM | the next four times, in seconds since 1970; "-" where none comes any more.
package main

import (
	"fmt"
	"math/rand"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

var schedules = []string{
	"* * * * *", "*/5 * * * *", "0 * * * *", "30 2 * * *", "0 0 * * *", "15 1,2,3 * * *", "0 3 * * mon-fri", "59 23 31 12 *",
	"0 0 29 2 *", "59 23 31 2 *", "0 12 1-7 * mon", "0 12 */2 * 2", "30 6-16/4 * * 1-5", "@hourly", "@daily", "@weekly", "@monthly",
	"@yearly", "@every 1h30m", "@every 90s", "0 0 1 jan,jul ?", "10-20/3 22 * 4-10 *", "0 1 * * 0", "45 */3 15 * *", "0 2 * 3,11 0",
}

// Moments about which clocks are changed, and some others.
var moments = map[string][]string{
	"UTC":                 {"2026-01-01T00:00:00Z", "2024-02-28T23:59:30Z", "2096-03-01T00:00:00Z", "1970-01-01T00:00:00Z"},
	"Europe/Berlin":       {"2026-03-28T22:59:59Z", "2026-03-29T00:59:00Z", "2026-10-24T23:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:15:00Z"},
	"America/New_York":    {"2026-03-08T05:00:00Z", "2026-03-08T06:59:30Z", "2026-11-01T04:30:00Z", "2026-11-01T05:30:00Z", "2026-11-01T06:10:00Z"},
	"America/Sao_Paulo":   {"2018-11-03T20:00:00Z", "2018-11-04T02:30:00Z", "2019-02-16T23:00:00Z"},
	"Africa/Cairo":        {"2026-04-23T21:00:00Z", "2026-10-29T20:30:00Z"},
	"Australia/Lord_Howe": {"2026-04-04T13:00:00Z", "2026-04-04T14:50:00Z", "2026-10-03T14:00:00Z"},
	"Asia/Kolkata":        {"2026-06-30T18:29:59Z"},
	"Asia/Kathmandu":      {"2026-06-30T18:14:59Z"},
	"Africa/Casablanca":   {"2026-02-14T22:00:00Z", "2027-03-13T23:30:00Z"},
	"America/Santiago":    {"2026-04-04T22:00:00Z", "2026-09-05T20:00:00Z", "2026-09-06T03:30:00Z"},
	"America/Nuuk":        {"2026-03-28T22:00:00Z", "2026-10-24T22:00:00Z"},
	"Pacific/Apia":        {"2026-03-01T00:00:00Z"}, // the library never ends about the day that was skipped in 2011
	"Europe/Dublin":       {"2026-03-28T23:00:00Z", "2026-10-25T00:00:00Z"},
	"Asia/Gaza":           {"2026-03-27T20:00:00Z", "2045-10-01T00:00:00Z"},
	"Pacific/Chatham":     {"2026-04-04T12:00:00Z", "2026-09-26T12:00:00Z"},
	"America/Havana":      {"2026-03-08T03:00:00Z", "2026-11-01T03:00:00Z"},
	"Antarctica/Troll":    {"2026-03-28T23:00:00Z"},
	"Pacific/Kiritimati":  {"2026-12-31T09:59:59Z"},
}

func print(text, zone string, from time.Time) {
	full := "TZ=" + zone + " " + text
	schedule, err := cron.ParseStandard(full)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s|%s|%d|", text, zone, from.Unix())
	for i := 0; i < 4; i++ {
		from = schedule.Next(from)
		if from.IsZero() {
			fmt.Print(" -")
			break
		}
		fmt.Printf(" %d", from.Unix())
	}
	fmt.Println()
}

// A field: all, one value, a list, a range or steps.
func field(random *rand.Rand, min, max int) string {
	pick := func() int { return min + random.Intn(max-min+1) }
	switch random.Intn(5) {
	case 0, 1:
		return "*"
	case 2:
		return fmt.Sprint(pick())
	case 3:
		return fmt.Sprintf("%d,%d", pick(), pick())
	}
	low, high := pick(), pick()
	if low > high {
		low, high = high, low
	}
	return fmt.Sprintf("%d-%d/%d", low, high, 1+random.Intn(5))
}

func main() {
	var zones []string
	for zone := range moments {
		zones = append(zones, zone)
	}
	for i := range zones { // in order, so that the file stays the same
		for j := i + 1; j < len(zones); j++ {
			if strings.Compare(zones[j], zones[i]) < 0 {
				zones[i], zones[j] = zones[j], zones[i]
			}
		}
	}
	for _, zone := range zones {
		for _, moment := range moments[zone] {
			from, err := time.Parse(time.RFC3339, moment)
			if err != nil {
				panic(err)
			}
			for _, text := range schedules {
				print(text, zone, from.UTC())
			}
		}
	}
	random := rand.New(rand.NewSource(1))
	for i := 0; i < 1000; i++ {
		text := strings.Join([]string{field(random, 0, 59), field(random, 0, 23), field(random, 1, 31), field(random, 1, 12), field(random, 0, 6)}, " ")
		print(text, zones[random.Intn(len(zones))], time.Unix(1356998400+random.Int63n(4000000000), 0).UTC())
	}
}
