// Judges a history with Porcupine: porcupine HISTORY.JSONL PAGE.HTML [-timeout 60s].
//
// Each line of the history is an operation (see models.go). The histories of different objects are checked one by one.
// It prints a line of JSON with the result of each model, and writes Porcupine's page of the first history that is refused.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// verdict is the result of one model.
type verdict struct {
	Objects    int      `json:"objects"`
	Operations int      `json:"operations"`
	Unknown    int      `json:"unknown"`
	Refused    []string `json:"refused"`
	Undecided  []string `json:"undecided"`
}

type object struct{ model, name string }

func main() {
	timeout := flag.Duration("timeout", time.Minute, "the limit for each object")
	flag.Parse()
	if flag.NArg() != 2 {
		fail(fmt.Errorf("usage: porcupine [-timeout 60s] HISTORY.JSONL PAGE.HTML"))
	}
	histories, err := read(flag.Arg(0))
	if err != nil {
		fail(err)
	}
	verdicts, err := judge(histories, *timeout, flag.Arg(1))
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(verdicts); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "porcupine:", err)
	os.Exit(1)
}

// read returns the operations of each object. An operation without a return stays open until after all others.
func read(path string) (map[object][]porcupine.Operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var found []operation
	var end int64
	for lines := json.NewDecoder(bufio.NewReader(file)); ; {
		var one operation
		if err := lines.Decode(&one); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if _, known := models[one.Model]; !known {
			return nil, fmt.Errorf("%s: unknown model %q", path, one.Model)
		}
		if one.ReturnNs != nil && *one.ReturnNs > end {
			end = *one.ReturnNs
		}
		found = append(found, one)
	}
	histories := map[object][]porcupine.Operation{}
	for _, one := range found {
		key, returned := object{one.Model, one.Object}, end+1
		if one.ReturnNs != nil {
			returned = *one.ReturnNs
		} else if one.CallNs > end {
			returned = one.CallNs
		}
		// Each operation has a row of its own in the page.
		histories[key] = append(histories[key], porcupine.Operation{
			ClientId: len(histories[key]), Input: one, Call: one.CallNs, Return: returned,
		})
	}
	return histories, nil
}

func judge(histories map[object][]porcupine.Operation, timeout time.Duration, page string) (map[string]*verdict, error) {
	verdicts := map[string]*verdict{}
	for name := range models {
		verdicts[name] = &verdict{Refused: []string{}, Undecided: []string{}}
	}
	hasPage := false
	for _, key := range sorted(histories) {
		history, model, of := histories[key], models[key.model], verdicts[key.model]
		of.Objects++
		of.Operations += len(history)
		for _, each := range history {
			if each.Input.(operation).ReturnNs == nil {
				of.Unknown++
			}
		}
		switch result, info := porcupine.CheckOperationsVerbose(model, history, timeout); result {
		case porcupine.Illegal:
			of.Refused = append(of.Refused, key.name)
			if !hasPage {
				hasPage = true
				if err := porcupine.VisualizePath(model, info, page); err != nil {
					return nil, err
				}
			}
		case porcupine.Unknown:
			of.Undecided = append(of.Undecided, key.name)
		}
	}
	return verdicts, nil
}

func sorted(histories map[object][]porcupine.Operation) []object {
	keys := make([]object, 0, len(histories))
	for key := range histories {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(a, b int) bool {
		return keys[a].model+"/"+keys[a].name < keys[b].model+"/"+keys[b].name
	})
	return keys
}
