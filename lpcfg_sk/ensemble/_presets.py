from lpcfg_sk.ensemble._voting import VotingParser

__all__ = ["make_ensemble"]

_BINARISATIONS = {
    "right0": {"direction": "right", "horizontal": 0},
    "right1": {"direction": "right", "horizontal": 1},
    "left1": {"direction": "left", "horizontal": 1},
    "head1": {"direction": "head", "horizontal": 1},
}

# A fixed, small number of iterations: members need not be the best alone, and
# different local optima are what a vote lives on.
_EM = {"max_iter": 20, "smoothing": 0.05, "validation_fraction": None, "tol": None}


def make_ensemble(
    preset="accurate",
    *,
    bracket_penalty=0.43,
    n_jobs=None,
    random_state=0,
    **preprocessing,
):
    """Ready ensembles of parsers.

    Parameters
    ----------
    preset : {"accurate", "fast"}, default="accurate"
        "accurate": four binarisations (right-branching without and with a memory of
        one sibling, left-branching, head-outward), each with a spectral grammar of 16
        states and an EM grammar of 8; "fast": eight EM grammars of 8 states from
        different starts in one binarisation, which share one coarse chart.
    bracket_penalty : float, default=0.43
        See :class:`VotingParser`.
    n_jobs : int, default=None
        Number of threads.
    random_state : int, default=0
        Seed of the first start; further ones count up from it.
    **preprocessing
        Parameters of the preprocessing of all members, see :func:`make_parser`.

    Returns
    -------
    parser : VotingParser

    Examples
    --------
    >>> from lpcfg_sk import make_ensemble
    >>> [name for name, _ in make_ensemble("accurate").estimators][:3]
    ['right0-spectral', 'right0-em', 'right1-spectral']
    """
    from lpcfg_sk import EMLPCFG, SpectralLPCFG, make_parser

    members = []
    if preset == "accurate":
        for number, (name, binarisation) in enumerate(_BINARISATIONS.items()):
            settings = {**binarisation, **preprocessing}
            seed = random_state + number
            spectral = SpectralLPCFG(16, random_state=seed)
            em = EMLPCFG(8, random_state=seed, **_EM)
            members.append((f"{name}-spectral", make_parser(spectral, **settings)))
            members.append((f"{name}-em", make_parser(em, **settings)))
    elif preset == "fast":
        settings = {**_BINARISATIONS["right1"], **preprocessing}
        for number in range(8):
            em = EMLPCFG(8, random_state=random_state + number, **_EM)
            members.append((f"em{number}", make_parser(em, **settings)))
    else:
        raise ValueError(f"preset is 'accurate' or 'fast', got {preset!r}")
    return VotingParser(members, bracket_penalty=bracket_penalty, n_jobs=n_jobs)
