// Answers lines of standard input by what Go's packages make of them, one line each.
//
//	image TEXT      → repository in full, its domain in lower case, tag and digest, or: error
//	quantity TEXT   → the amount in units of 10⁻⁹ as an integer, or: error
//
// TEXT is a JSON string, so that it can hold anything.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"strings"

	// Digests are of the algorithms that are linked in.
	_ "crypto/sha256"
	_ "crypto/sha512"

	"github.com/distribution/reference"
	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer output.Flush()
	for {
		line, err := input.ReadString('\n')
		if err != nil {
			return
		}
		kind, encoded, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		var text string
		if err := json.Unmarshal([]byte(encoded), &text); err != nil {
			panic(err)
		}
		switch kind {
		case "image":
			fmt.Fprintln(output, image(text))
		case "quantity":
			fmt.Fprintln(output, quantity(text))
		default:
			panic("unknown kind " + kind)
		}
	}
}

func image(text string) string {
	named, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return "error"
	}
	tag, digest := "", ""
	if tagged, ok := named.(reference.Tagged); ok {
		tag = tagged.Tag()
	}
	if digested, ok := named.(reference.Digested); ok {
		digest = digested.Digest().String()
	}
	// A host that is none by the grammar, such as my_registry.com, stands in the path.
	repository := strings.TrimPrefix(strings.ToLower(reference.Domain(named))+"/"+reference.Path(named), "/")
	return fmt.Sprintf("%s %s %s", repository, tag, digest)
}

// The amount as the API server keeps it: exact to 10⁻⁹.
func quantity(text string) string {
	parsed, err := resource.ParseQuantity(text)
	if err != nil {
		return "error"
	}
	decimal := parsed.AsDec()
	nano := new(inf.Dec).Mul(decimal, inf.NewDec(1_000_000_000, 0))
	whole := new(inf.Dec).Round(nano, 0, inf.RoundExact)
	if whole == nil {
		return "finer than 1e-9: " + decimal.String()
	}
	return new(big.Int).Set(whole.UnscaledBig()).String()
}
