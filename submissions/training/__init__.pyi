from .loop import Plan as Plan
from .loop import Trained as Trained
from .loop import forget as forget
from .loop import train as train
