"""What the transformers of treebanks share."""

from sklearn.base import TransformerMixin

from lpcfg_sk.treebank._sharded import ShardedTreebank
from lpcfg_sk.treebank._validation import check_treebank

__all__ = ["TreebankTransformerMixin"]


class TreebankTransformerMixin(TransformerMixin, auto_wrap_output_keys=None):
    """A transformer whose X are trees."""

    def fit_transform(self, X, y=None, **fit_params):
        """Fit to trees and transform them.

        Parameters
        ----------
        X : Treebank, ShardedTreebank or iterable of trees or sentences
            Training data.
        y : None
            Ignored.
        **fit_params
            Further arguments of ``fit``.

        Returns
        -------
        treebank : Treebank
        """
        # Both fit and transform read X, and an iterator can be read once.
        if not isinstance(X, ShardedTreebank):
            X = check_treebank(X, estimator=self, allow_empty=True)
        return super().fit_transform(X, y, **fit_params)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags
