from .loading import load_encoder as load_encoder
from .protocol import Encoder as Encoder
