from .loop import Trained as Trained
from .loop import forget as forget
from .loop import train as train
from .training_options import Plan as Plan
