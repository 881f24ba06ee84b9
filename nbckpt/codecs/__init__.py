"""Values and bytes: encoding, decoding, canonical digests, refusals with their path."""

from nbckpt.codecs.canonical import Canonical
from nbckpt.codecs.code import global_names, is_local, stored_globals
from nbckpt.codecs.decoder import SecretEncoder, decode
from nbckpt.codecs.definitions import Target, attribute_of
from nbckpt.codecs.encoder import Encoded, Encoder, Refusal

__all__ = [
    "Canonical",
    "Encoded",
    "Encoder",
    "Refusal",
    "SecretEncoder",
    "Target",
    "attribute_of",
    "decode",
    "global_names",
    "is_local",
    "stored_globals",
]
