"""Methods that see more than vectors: learned prompts, a text tower that says no, and words named for each photo.

They are registered beside those of `outword.maths.methods`, when one of them is looked up or all are listed. What they
need besides vectors they make themselves, in `fit_inputs` and `score_inputs`.
"""

# An import registers: the order here is that of lists.
# isort: off
from outword_lab.learning.methods.coop import CoOp
from outword_lab.learning.methods.fa import FA
from outword_lab.learning.methods.locoop import LoCoOp
from outword_lab.learning.methods.sct import SCT
from outword_lab.learning.methods.lsn import LSN
from outword_lab.learning.methods.negprompt import NegPrompt
from outword_lab.learning.methods.lapt import LAPT
from outword_lab.learning.methods.zoc import ZOC
from outword_lab.learning.methods.clipn import CLIPN

__all__ = ["CLIPN", "FA", "LAPT", "LSN", "SCT", "ZOC", "CoOp", "LoCoOp", "NegPrompt"]
