// SPDX-License-Identifier: MIT

package analysis

import (
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"   ,.! ":                            "",
		"Red bicycle":                        "red bicycl",
		"The red, RED bicycles!":             "red red bicycl",
		"it was built in 1963-69":            "built 1963 69",
		"1,977 or 3.14 or 5":                 "1,977 3.14 5",
		"end of line.Next line":              "end line line",
		"don't and Tom's and Tom’s":          "tom tom",
		"Élan vital, Σοφία":                  "élan vital σοφία",
		"snake_case x2":                      "snake_case x2",
		"'quoted' word'":                     "quot word",
		"\xff\xfebad bytes":                  "bad byte",
		"connected connecting connections":   "connect connect connect",
		"naïve 東京 tower":                     "naïve 東京 tower",
		strings.Repeat("very ", 3) + "large": "larg",
	} {
		if got := strings.Join(Words(text), " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestStem has words whose stems Porter's paper gives.
func TestStem(t *testing.T) {
	for word, want := range map[string]string{
		"caresses": "caress", "ponies": "poni", "ties": "ti", "cats": "cat", "gas": "ga",
		"feed": "feed", "agreed": "agre", "plastered": "plaster", "bled": "bled", "motoring": "motor", "sing": "sing",
		"conflated": "conflat", "troubled": "troubl", "sized": "size", "hopping": "hop", "falling": "fall",
		"hissing": "hiss", "fizzed": "fizz", "failing": "fail", "filing": "file", "happy": "happi", "sky": "sky",
		"relational": "relat", "conditional": "condit", "rational": "ration", "digitizer": "digit", "radically": "radic",
		"vietnamization": "vietnam", "predication": "predic", "operator": "oper", "feudalism": "feudal",
		"decisiveness": "decis", "hopefulness": "hope", "formality": "formal", "sensibility": "sensibl",
		"triplicate": "triplic", "formative": "form", "electrical": "electr", "goodness": "good",
		"revival": "reviv", "allowance": "allow", "inference": "infer", "airliner": "airlin", "adjustable": "adjust",
		"irritant": "irrit", "replacement": "replac", "adjustment": "adjust", "dependent": "depend", "adoption": "adopt",
		"communism": "commun", "activate": "activ", "effective": "effect", "bowdlerize": "bowdler",
		"probate": "probat", "rate": "rate", "cease": "ceas", "controlling": "control", "roll": "roll",
		"is": "is", "élan": "élan",
	} {
		if got := stem(word); got != want {
			t.Errorf("%s: got %s, want %s", word, got, want)
		}
	}
}

// A word may be as long as the whole text, and splitting takes time linear in its length, not
// quadratic.
func TestLongWords(t *testing.T) {
	for _, letter := range []string{"y", "ye", "a", "1", "é"} {
		text := strings.Repeat(letter, 2<<20/len(letter))
		if got := Words(text); len(got) != 1 || got[0] != text {
			t.Errorf("%d times %s: got %d words", len(text)/len(letter), letter, len(got))
		}
	}
	word := strings.Repeat("ba", (maxStemmed-len("bation"))/2) + "bation"
	if got := stem(word); got == word {
		t.Errorf("%s keeps its ending", word)
	}
	if got := stem("bb" + word); got != "bb"+word {
		t.Errorf("bb%s becomes %s", word, got)
	}
}

func FuzzWords(f *testing.F) {
	for _, seed := range []string{"", "a'b", "1,2,", "’s", "x\xff", "\u0301", "東京タワー", "the 's"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := Words(text)
		if len(words) > len(text) {
			t.Errorf("%q has %d words", text, len(words))
		}
		if again := Words(text + " " + text); len(again) != 2*len(words) {
			t.Errorf("%q has %d words once and %d twice", text, len(words), len(again))
		}
	})
}
