"""Model files: `save` and `load` (safetensors, without code inside) and `to_onnx`."""

from rankhinge._public import publish
from rankhinge.persistence.errors import ModelFileError
from rankhinge.persistence.model_file import load, save
from rankhinge.persistence.onnx_model import register_converters, to_onnx

__all__ = ["ModelFileError", "load", "register_converters", "save", "to_onnx"]

publish(__name__)
