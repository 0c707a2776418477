"""A small reader of the ARPA format that looks up one n-gram after the other."""


def read(path):
    """Log probabilities and weights by tuples of words, and the order."""
    proba, weight, n = {}, {}, 0
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if line.startswith("\\") and line.endswith("-grams:"):
                n = int(line[1:].split("-")[0])
            elif n and line and not line.startswith("\\"):
                fields = line.split("\t")
                gram = tuple(fields[1].split(" "))
                assert len(gram) == n
                proba[gram] = float(fields[0])
                weight[gram] = float(fields[2]) if len(fields) > 2 else 0.0
    return proba, weight, n


def log10(model, word, history):
    """Log probability of a word, backing off as the format says."""
    proba, weight, order = model
    if (word,) not in proba:
        word = "<unk>"
    history = tuple(h if (h,) in proba else "<unk>" for h in history)
    history = history[max(0, len(history) - order + 1) :]
    total = 0.0
    while (*history, word) not in proba:
        assert history, word
        total += weight.get(history, 0.0)
        history = history[1:]
    return total + proba[*history, word]


def sentence_log10(model, sentence, starts=1):
    """Log probabilities of the tokens of a sentence and of its end."""
    tokens = [*sentence, "</s>"]
    before = ["<s>"] * starts
    return [log10(model, word, [*before, *tokens[:i]]) for i, word in enumerate(tokens)]


def total_mass(model, history):
    """Sum of the probabilities of all words after a history."""
    words = [gram[0] for gram in model[0] if len(gram) == 1 and gram[0] != "<s>"]
    return sum(10 ** log10(model, word, history) for word in words)
