"""DeepSpeed's config, which every engine reads. Does not import torch.

keys.py reads a file by the schema in schema.json, values.py its values, auto.py the values "auto". merge.py
makes the config of a run from the file and the options. query.py reads from it.
"""
