"""A small English with real latent structure."""

from functools import lru_cache
from numbers import Integral

from lpcfg_sk._validation import Interval, StrOptions, validate_params
from lpcfg_sk.datasets._templates import compile_templates
from lpcfg_sk.treebank import unbinarize

# Variables: c is the class of a noun; n, m and k are numbers.
_DOMAINS = {
    "c": {"person": 0.4, "thing": 0.35, "text": 0.25},
    "n": {"sg": 0.6, "pl": 0.4},
    "m": {"sg": 0.6, "pl": 0.4},
    "k": {"sg": 0.6, "pl": 0.4},
}

_SENTENCES = """
S[main] -> NP[sub,n] VP[n] . : 74
S[main] -> NP[thing,n] VP[it,n] . : 8
S[main] -> NP[text,n] VP[it,n] . : 5
S[main] -> PP[when] , NP[sub,n] VP[n] . : 7
S[main] -> S[clause] CC S[clause] . : 3
S[clause] -> NP[sub,n] VP[n] : 85
S[clause] -> NP[thing,n] VP[it,n] : 15
S[gap,n] -> VP[gap,n] : 1
S[it,n] -> VP[it,n] : 1
SBAR[person,n] -> WHNP[who] S[gap,n] : 1
SBAR[thing,n] -> WHNP[which] S[it,n] : 1
SBAR[text,n] -> WHNP[which] S[it,n] : 1
SBAR[that] -> IN[that] S[clause] : 1
SBAR[that] -> S[clause] : 1
WHNP[who] -> WP : 3
WHNP[who] -> WDT[that] : 1
WHNP[which] -> WDT[which] : 2
WHNP[which] -> WDT[that] : 1
"""

# A conjunct is of the same class; what modifies a noun depends on its class, and a
# relative clause agrees with it.
_NOUN_PHRASES = """
NP[c,sg] -> DT[sg] NN[c] : 34
NP[c,sg] -> DT[sg] JJ[c] NN[c] : 9
NP[c,pl] -> DT[pl] NNS[c] : 20
NP[c,pl] -> NNS[c] : 10
NP[c,pl] -> JJ[c] NNS[c] : 6
NP[c,pl] -> CD NNS[c] : 5
NP[person,sg] -> NNP[name] : 6
NP[c,n] -> NP[c,n] PP[c] : 16
NP[c,n] -> NP[c,n] SBAR[c,n] : 9
NP[c,pl] -> NP[c,n] CC NP[c,m] : 12
NP[sub,sg] -> DT[sg] NN[person] : 20
NP[sub,sg] -> NNP[name] : 10
NP[sub,pl] -> DT[pl] NNS[person] : 20
NP[sub,pl] -> NNS[person] : 8
NP[sub,n] -> PRP[n] : 10
NP[sub,n] -> NP[person,n] PP[person] : 4
NP[sub,n] -> NP[person,n] SBAR[person,n] : 5
NP[sub,pl] -> NP[person,n] CC NP[person,m] : 4
NP[long] -> NP[c,n] PP[c] : 5
NP[long] -> NP[c,n] SBAR[c,n] : 5
NP[long] -> NP[c,n] CC NP[c,m] : 5
NP[long,c] -> NP[c,n] PP[c] : 2
NP[long,c] -> NP[c,n] SBAR[c,n] : 1
NP[held,def] -> DT[def] NN[held] : 1
NP[held,indef] -> DT[indef] NN[held] : 4
NP[held,indef] -> DT[indef] JJ[thing] NN[held] : 1
NP[tool] -> DT[sg] NN[tool] : 1
NP[trait] -> DT[indef] NN[trait] : 3
NP[trait] -> DT[indef] JJ[trait] NN[trait] : 2
NP[trait] -> JJ[trait] NNS[trait] : 2
NP[place] -> DT[def] NN[place] : 3
NP[place] -> NNP[city] : 1
NP[box] -> DT[def] NN[box] : 1
NP[now] -> NN[now] : 1
NP[now] -> DT[every] NN[period] : 1
NP[past] -> NN[past] : 1
NP[past] -> JJ[last] NN[period] : 1
NP[time] -> NNP[day] : 1
NP[time] -> DT[def] NN[time] : 1
PP[person] -> IN[of] NP[person,n] : 4
PP[person] -> IN[with] NP[trait] : 3
PP[person] -> IN[with] NP[held,indef] : 3
PP[person] -> IN[from] NP[place] : 3
PP[thing] -> IN[of] NP[person,n] : 3
PP[thing] -> IN[from] NP[place] : 3
PP[thing] -> IN[from] NP[box] : 3
PP[text] -> IN[about] NP[c,n] : 5
PP[text] -> IN[of] NP[person,n] : 2
PP[with] -> IN[with] NP[held,def] : 2
PP[with] -> IN[with] NP[tool] : 2
PP[into] -> IN[into] NP[box] : 1
PP[about] -> IN[about] NP[c,n] : 1
PP[when] -> IN[when] NP[time] : 2
PP[where] -> IN[at] NP[place] : 1
"""

# What follows a verb depends on its class; its form agrees with the subject.
_VERB_PHRASES = """
VP[#] -> #[sleep] : 7
VP[#] -> #[sleep] PP[where] : 4
VP[#] -> #[sleep] ADVP : 5
VP[#] -> #[sleep] NP[%] : 5
VP[#] -> #[like] NP[c,m] : 2
VP[#] -> #[like] NP[c,m] NP[%] : 6
VP[#] -> #[like] NP[long] : 36
VP[#] -> #[hit] NP[long,person] : 10
VP[#] -> #[hit] NP[person,m] PP[with] : 9
VP[#] -> #[hit] NP[thing,m] PP[with] : 5
VP[#] -> #[meet] NP[long,person] : 6
VP[#] -> #[meet] NP[person,m] PP[where] : 8
VP[#] -> #[meet] NP[person,m] NP[%] : 4
VP[#] -> #[put] NP[thing,m] PP[into] : 9
VP[#] -> #[ask] NP[person,m] PP[about] : 8
VP[#] -> #[give] NP[person,m] NP[thing,k] : 2
VP[#] -> #[give] NP[person,m] NP[long,text] : 3
VP[#] -> #[think] SBAR[that] : 4
VP[#] -> #[think] SBAR[that] NP[%] : 6
VP[#] -> #[be] ADJP[person] : 2
VP[#] -> VP[#] CC VP[#] : 10
VP[gap,#] -> #[sleep] : 2
VP[gap,#] -> #[sleep] PP[where] : 3
VP[gap,#] -> #[sleep] NP[%] : 2
VP[gap,#] -> #[like] NP[c,m] : 5
VP[gap,#] -> #[hit] NP[person,m] PP[with] : 2
VP[gap,#] -> #[be] ADJP[person] : 1
VP[it,#] -> #[fall] : 2
VP[it,#] -> #[fall] PP[when] : 1
VP[it,#] -> #[be] ADJP[thing] : 4
VP[it,#] -> #[please] NP[person,m] : 4
VP[it,#] -> VP[it,#] CC VP[it,#] : 1
"""

_WORDS = """
ADJP[person] -> JJ[person] : 2
ADJP[person] -> RB[degree] JJ[person] : 1
ADJP[thing] -> JJ[thing] : 2
ADJP[thing] -> RB[degree] JJ[thing] : 1
ADVP -> RB[manner] : 1
. = . !
, = ,
CC = and or
CD = two three four seven twenty
WP = who
WDT[which] = which
WDT[that] = that
PRP[sg] = he she it
PRP[pl] = they we
DT[sg] = the a this every that
DT[pl] = the these some all those
DT[def] = the this that
DT[indef] = a another some
IN[of] = of
IN[with] = with
IN[from] = from near in
IN[at] = at outside in
IN[into] = into in onto on
IN[about] = about on
IN[when] = on after before during
IN[that] = that
NNP[name] = Mary John Anna Peter Kim Lee
NNP[city] = Paris London Cairo
NNP[day] = Monday Friday Sunday Christmas
NN[person] = man girl teacher friend doctor boy artist brother student guard
NNS[person] = girls students friends men children teachers sisters guards artists
NN[thing] = car key ball cup coat lamp bottle machine clock ring
NNS[thing] = keys cars cups coins bottles flowers lamps machines
NN[text] = book story letter report poem film joke
NNS[text] = stories books letters songs reports films
NN[held] = stick gun umbrella camera knife
NN[tool] = hammer fist broom
NN[trait] = beard smile hat voice scar
NNS[trait] = eyes shoes hands
NN[place] = park village city market station school
NN[box] = box drawer bag pocket basket
DT[every] = every this
JJ[last] = last
NN[now] = today tonight tomorrow
NN[past] = yesterday
NN[period] = morning week evening year
NN[time] = war lunch summer night lesson
JJ[person] = old young happy clever tired angry
JJ[thing] = red old heavy broken small expensive
JJ[text] = long old famous boring new
JJ[trait] = long red strange big
RB[degree] = very rather too
RB[manner] = quietly often again loudly
VBZ[sleep] = sleeps laughs waits sings works
VBP[sleep] = sleep wait laugh work sing
VBD[sleep] = slept laughed waited worked
VBZ[like] = likes sees knows hates remembers
VBP[like] = like know see remember hate
VBD[like] = saw liked knew forgot
VBZ[hit] = hits beats breaks opens
VBP[hit] = hit beat break open
VBD[hit] = hit broke opened touched
VBZ[meet] = meets finds visits
VBP[meet] = meet visit find
VBD[meet] = met found visited
VBZ[put] = puts throws drops hides
VBP[put] = put throw drop hide
VBD[put] = put dropped threw hid
VBZ[ask] = asks tells warns
VBP[ask] = ask tell warn
VBD[ask] = asked told warned
VBZ[give] = gives sends shows
VBP[give] = give show send
VBD[give] = gave sent showed
VBZ[think] = thinks says knows believes
VBP[think] = think say believe know
VBD[think] = said thought knew believed
VBZ[be] = is looks seems
VBP[be] = are look seem
VBD[be] = was looked seemed
VBZ[fall] = falls disappears works
VBP[fall] = fall disappear work
VBD[fall] = fell disappeared worked
VBZ[please] = pleases amuses
VBP[please] = please amuse
VBD[please] = pleased amused
"""


# Verb forms: tag, number of the subject, and the adverbials of time that go with it.
_FORMS = (("VBZ", "sg", "now"), ("VBP", "pl", "now"), ("VBD", "n", "past"))

_SEED = 20140601
_SUBSETS = {"train": (0.0, 0.8), "test": (0.8, 1.0), "all": (0.0, 1.0)}


@lru_cache(maxsize=1)
def toy_grammar():
    """The L-PCFG of :func:`load_toy`.

    Returns
    -------
    grammar : LPCFG
    """
    verb_phrases = "".join(
        _VERB_PHRASES.replace("#[", f"{tag}[")
        .replace("#]", f"{number}]")
        .replace("%", time)
        for tag, number, time in _FORMS
    )
    return compile_templates(
        _SENTENCES + _NOUN_PHRASES + verb_phrases + _WORDS,
        domains=_DOMAINS,
        root=("S", ("main",)),
    )


@validate_params(
    {
        "n": [Interval(Integral, 1, None, closed="left")],
        "subset": [StrOptions(set(_SUBSETS))],
        "return_grammar": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def load_toy(n=3000, *, subset="all", return_grammar=False):
    """Load a treebank of a small English with latent structure.

    The trees are drawn from a hand-written L-PCFG and are always the same. Their
    labels are those of the Penn Treebank; what determines the structure is not
    visible in them: subjects agree with verbs and relative clauses with nouns,
    verbs choose their complements, prepositional phrases attach by preposition,
    definiteness and the classes of verbs and nouns, adverbials of time agree with
    the tense of their verb, and what is coordinated is of one class.

    Parameters
    ----------
    n : int, default=3000
        Number of trees; a smaller treebank is the beginning of a larger one.
    subset : {"all", "train", "test"}, default="all"
        All of them, the first four fifths, or the rest.
    return_grammar : bool, default=False
        Whether to return the grammar as well.

    Returns
    -------
    treebank : Treebank
        Trees, not binarised.
    grammar : LPCFG
        The grammar that the trees were drawn from, over the labels of
        ``TreeBinarizer().fit_transform(treebank)``. Only with `return_grammar`.

    Notes
    -----
    On the test part a plain PCFG has an F1 near 83, the true grammar near 96.

    Examples
    --------
    >>> from lpcfg_sk.datasets import load_toy
    >>> treebank = load_toy()
    >>> len(treebank)
    3000
    >>> len(load_toy(subset="train")), len(load_toy(subset="test"))
    (2400, 600)
    """
    grammar = toy_grammar()
    first, last = (round(share * n) for share in _SUBSETS[subset])
    treebank = unbinarize(grammar.sample(n, random_state=_SEED)[first:last])
    return (treebank, grammar) if return_grammar else treebank
