"""Writes train/config/deepspeed/schema.json, a JSON Schema of the config of the installed DeepSpeed:
``python -m tools.write_deepspeed_schema``, after a change of its version.

Sections that DeepSpeed reads with a pydantic model have the schema of the model, and refuse unknown keys. The
others are read key by key: a dict that records the keys finds them, and the default of a key has its type.
``$defs`` has the parameters of the optimizers and the schedulers, from the signatures of their classes, and
``removed`` the top-level keys that earlier versions had."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from importlib.metadata import version
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

SCHEMA = Path(__file__).resolve().parent.parent / "train/config/deepspeed/schema.json"
KEPT = ("type", "enum", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object"}
# Sections that are read key by key.
READ = "activation_checkpointing aio autotuning checkpoint data_efficiency data_types expert_parallel "
READ += "flops_profiler optimizer scheduler torch_autocast"
Schema = dict[str, Any]


def whole(least: int) -> Schema:
    return {"type": "integer", "minimum": least}


def or_null(one: Schema) -> Schema:
    return {"anyOf": [one, {"type": "null"}]}


def any_case(*words: str) -> Schema:
    cases = (str.lower, str.upper, str.capitalize)
    return {"enum": list(dict.fromkeys((*words, *(case(word) for case in cases for word in words))))}


NUMBER: Schema = {"type": "number", "minimum": 0}
TEXT, FLAG, OBJECT = {"type": "string"}, {"type": "boolean"}, {"type": "object"}
TEXTS = {"type": "array", "items": TEXT}
DTYPES = [*("float32", "fp32", "float", "torch.float32", "float16", "fp16", "half", "torch.float16")]
DTYPES += ["bfloat16", "bf16", "torch.bfloat16"]
HALF_DTYPES = DTYPES[4:]
ABOVE_0: Schema = {"type": "number", "exclusiveMinimum": 0}
BETA = {"type": "number", "minimum": 0, "exclusiveMaximum": 1}
# Parameters of optimizers and schedulers. The type of the others is that of their default.
PARAMETERS: dict[str, Schema] = {
    **dict.fromkeys(("foreach", "fp32_optimizer_states"), or_null(FLAG)),
    **dict.fromkeys(("T_max", "cycle_first_step_size", "cycle_second_step_size"), ABOVE_0),
    "lr_range_test_step_size": ABOVE_0,
    "betas": {
        "title": "two numbers from 0 to 1",
        "type": "array",
        "items": BETA,
        "minItems": 2,
        "maxItems": 2,
    },
    "last_batch_iteration": {
        "title": "-1, as a resumed run takes its step from the checkpoint",
        "type": "integer",
        "enum": [-1],
    },
    "milestones": {"type": "array", "items": {"type": "number"}, "minItems": 1},
    "ns_method": {"enum": ["gram", "standard"]},
    "torch_adam": FLAG,
    "warmup_type": {"enum": ["log", "linear"]},
}
# Parameters that are set otherwise, or not at all; and those that jobgen sets if the file does not.
UNUSED = "params model_params optimizer last_epoch adamw_mode capturable fused maximize "
UNUSED += "decoupled_weight_decay differentiable max_grad_norm set_grad_none"
OPTIONAL = ("T_max", "total_num_steps")
# Values that DeepSpeed checks in the middle of a run, or never. amp is our own: DeepSpeed has dropped it.
RULES: dict[str, Schema] = {
    "activation_checkpointing.number_checkpoints": or_null(whole(0)),
    "amp": {**OBJECT, "properties": {"enabled": FLAG, "opt_level": {}}},
    "checkpoint.parallel_write": {**OBJECT, "properties": {"pipeline_stage": FLAG}},
    "checkpoint.tag_validation": any_case("Warn", "Ignore", "Fail"),
    "checkpoint.writer": or_null(OBJECT),
    "communication_data_type": or_null(any_case("fp16", "bf16", "fp32")),
    "data_efficiency.data_routing": OBJECT,
    "data_efficiency.data_sampling": OBJECT,
    "datastates_ckpt": {},
    "data_types.buffer_dtype": or_null({"enum": DTYPES}),
    "data_types.grad_accum_dtype": or_null({"enum": DTYPES}),
    "data_types.keep_in_fp32_modules": {"anyOf": [{"enum": ["auto"]}, TEXTS]},
    "data_types.param_dtype": or_null({"enum": DTYPES}),
    "flops_profiler.module_depth": whole(-1),
    "flops_profiler.output_file": or_null(TEXT),
    "flops_profiler.profile_step": whole(0),
    "flops_profiler.recompute_fwd_factor": NUMBER,
    "flops_profiler.top_modules": whole(1),
    "gradient_allreduce_op": any_case("mean", "sum"),
    "gradient_clipping": NUMBER,
    "gradient_predivide_factor": ABOVE_0,
    "log_level": or_null(any_case("debug", "info", "warning", "error", "critical")),
    "optimizer.legacy_fusion": FLAG,
    "optimizer.params": {},
    "optimizer.type": {},
    "pipeline.activation_checkpoint_interval": whole(0),
    "pipeline.stages": {"anyOf": [{"enum": ["auto"]}, whole(1)]},
    "scheduler.params": {},
    "scheduler.type": {},
    "seq_parallel_communication_data_type": or_null(any_case("fp16", "bf16", "fp32")),
    "steps_per_print": or_null(whole(1)),
    "torch_autocast.dtype": {"enum": HALF_DTYPES},
    "torch_autocast.lower_precision_safe_modules": TEXTS,
    "vocabulary_size": or_null(whole(0)),
}


class Recorder(dict[str, Any]):
    """A dict that records the keys that are read, and their defaults."""

    def __init__(self, values: dict[str, Any], defaults: dict[str, Any] | None = None) -> None:
        super().__init__(values)
        self.defaults: dict[str, Any] = {} if defaults is None else defaults

    def get(self, key: str, default: Any = None) -> Any:
        self.defaults.setdefault(key, default)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.defaults.setdefault(str(key), None)
        return super().__contains__(key)

    def keys(self) -> Any:
        return self  # for ``key in config.keys()``

    def __copy__(self) -> Recorder:
        return Recorder(dict(self.items()), self.defaults)


def models() -> dict[str, Any]:
    """Return the models by section."""
    from deepspeed.comm.config import CommsLoggerConfig
    from deepspeed.compile.config import CompileConfig
    from deepspeed.inference.config import WeightQuantConfig
    from deepspeed.monitor.config import DeepSpeedMonitorConfig
    from deepspeed.runtime.config import HybridEngineConfig
    from deepspeed.runtime.precision_config import DeepSpeedBF16Config, DeepSpeedFP16Config
    from deepspeed.runtime.tensor_parallel.config import TPTrainingConfig
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig
    from deepspeed.utils.config import DeepSpeedThroughputTimerConfig

    return {
        "bf16": DeepSpeedBF16Config,
        "bfloat16": DeepSpeedBF16Config,
        "comms_logger": CommsLoggerConfig,
        "compile": CompileConfig,
        "fp16": DeepSpeedFP16Config,
        "hybrid_engine": HybridEngineConfig,
        "tensor_parallel": TPTrainingConfig,
        "timers.throughput": DeepSpeedThroughputTimerConfig,
        "weight_quantization": WeightQuantConfig,
        "zero_optimization": DeepSpeedZeroConfig,
        **{name: field.annotation for name, field in DeepSpeedMonitorConfig.model_fields.items()},
    }


def of_model(model: Any) -> Schema:
    """Return the schema of a model, with each field by its name and by its alias."""
    fields = {}
    for name, field in model.model_fields.items():
        one = of_field(field)
        if one.get("type") in ("array", "object"):  # which validators of the model may convert
            more = [
                {"type": kind}
                for kind, value in (("null", None), ("string", "x"))
                if takes(model, name, value)
            ]
            one = {"anyOf": [one, *more]} if more else one
        fields |= {name: one, field.alias or name: one}
    return {**OBJECT, "additionalProperties": False, "properties": fields}


def takes(model: Any, key: str, value: Any) -> bool:
    """Return whether DeepSpeed accepts the value of a key."""
    try:
        model(**{key: value})
    except Exception:
        return False
    return True


def of_field(field: Any) -> Schema:
    from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> Schema:
            return {}  # an object of torch, which no JSON value is

    if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
        return of_model(field.annotation)
    kind = Annotated[(field.annotation, Field(), *field.metadata)]  # type: ignore[valid-type]
    adapter = TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True))
    made = adapter.json_schema(schema_generator=Generator)
    return _kept(made, made.get("$defs", {}))


def _kept(schema: Schema, definitions: Schema) -> Schema:
    """Return the parts of pydantic's schema that are checked, without references."""
    if "$ref" in schema:
        return _kept(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    made = {name: schema[name] for name in KEPT if name in schema}
    if "anyOf" in schema:
        made["anyOf"] = [_kept(one, definitions) for one in schema["anyOf"]]
    if schema.get("items"):
        made["items"] = _kept(schema["items"], definitions)
    if "properties" in schema:
        made["properties"] = {key: _kept(one, definitions) for key, one in schema["properties"].items()}
        made["additionalProperties"] = False
    return made


def recorded() -> dict[str, dict[str, Any]]:
    """Return the keys that DeepSpeed reads, with their defaults, by section; '' is the top level."""
    from deepspeed.runtime.config import DeepSpeedConfig, get_pipeline_config

    sections = {name: Recorder({}) for name in READ.split()}
    top = Recorder({"train_batch_size": 1, **sections, "expert_parallel": Recorder({"enabled": False})})
    sections["expert_parallel"] = top["expert_parallel"]
    DeepSpeedConfig(top)
    found = {"": top.defaults, **{name: section.defaults for name, section in sections.items()}}
    found["pipeline"] = {**get_pipeline_config({}), "use_reentrant": True}  # the latter by its engine
    found["pipeline"] |= {"type": "", "params": {}}  # old examples have them, and nothing reads them
    # deepspeed.initialize reads these, and a boolean zero_optimization the last one.
    found[""] |= {"data_parallel_size": 1, "sequence_parallel_size": 1, "allgather_size": 500_000_000}
    return found


def parameters(least: Schema, *makers: Callable[..., object], more: str = "") -> Schema:
    """Return the schema of the parameters of these classes; ``more`` are others, that are no flags."""
    found: dict[str, Any] = dict.fromkeys(more.split())
    for one in (one for make in makers for one in signature(make).parameters.values()):
        if one.name not in UNUSED.split():
            found.setdefault(one.name, one.default)
    number = {"type": "number", **least}
    return {
        **OBJECT,
        "properties": {
            name: PARAMETERS.get(name, FLAG if isinstance(default, bool) else number)
            for name, default in found.items()
        },
        "required": [key for key, one in found.items() if one is Parameter.empty and key not in OPTIONAL],
    }


def types() -> dict[str, dict[str, Schema]]:
    """Return the schema of the parameters of each type of optimizer and scheduler."""
    from deepspeed.ops.adam import DeepSpeedCPUAdam, FusedAdam
    from deepspeed.ops.lamb import FusedLamb
    from deepspeed.ops.lion import FusedLion
    from deepspeed.runtime import lr_schedules
    from torch import optim

    adam, least = (optim.Adam, FusedAdam, DeepSpeedCPUAdam), {"minimum": 0}
    schedulers = [getattr(lr_schedules, name) for name in lr_schedules.VALID_LR_SCHEDULES]
    schedulers += [optim.lr_scheduler.MultiStepLR, optim.lr_scheduler.CosineAnnealingLR]  # jobgen's own keys
    return {
        "optimizer": {
            "adagrad": parameters(least, optim.Adagrad),
            **dict.fromkeys(("adam", "adamw"), parameters(least, *adam, more="torch_adam")),
            "lamb": parameters(least, FusedLamb),
            "lion": parameters(least, FusedLion),
            "muon": parameters(least, *adam, more="torch_adam momentum muon_lr adam_lr ns_method"),
            "sgd": parameters(least, optim.SGD),
        },
        "scheduler": {one.__name__: parameters({}, one) for one in schedulers},
    }


def schema() -> Schema:
    from deepspeed.runtime.config import _REMOVED_TOP_LEVEL_CONFIG_KEYS, DeepSpeedConfig

    found = recorded()
    made: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"DeepSpeed {version('deepspeed')}",
        **OBJECT,
        "$defs": types(),
        "properties": {},
        "removed": sorted(_REMOVED_TOP_LEVEL_CONFIG_KEYS),
    }
    top = made["properties"]
    for section, defaults in found.items():
        inner = {key: of_default(value) for key, value in defaults.items()}
        if section:
            top[section] = {**OBJECT, "properties": inner}
        else:
            top |= {key: one for key, one in inner.items() if key not in _REMOVED_TOP_LEVEL_CONFIG_KEYS}
    for path, one in (*RULES.items(), *((path, of_model(model)) for path, model in models().items())):
        place(top, path, one)

    def of_file(**block: Any) -> None:
        DeepSpeedConfig({"train_batch_size": 1, **block})

    for section in list(top):
        if "properties" in top[section] and takes(of_file, section, None):
            top[section] = or_null(top[section])
    return made


def of_default(value: Any) -> Schema:
    kind = KINDS.get(type(value))
    return {"type": kind} if kind and value != "auto" else {}


def place(top: Schema, path: str, one: Schema) -> None:
    """Put the schema of a key at its path."""
    *sections, key = path.split(".")
    for name in sections:
        top[name] = {"properties": {}, **top.get(name, {}), **OBJECT}
        top = top[name]["properties"]
    top[key] = copy.deepcopy(one)


def text() -> str:
    """Return the schema as JSON, with each innermost object and list in one line."""
    made = json.dumps(schema(), indent=1, sort_keys=True)
    for inner in (r"\[[^][{}]*\]", r"\{[^{}]*\}", r"\[[^][]{,300}\]"):
        made = re.sub(inner, lambda found: " ".join(found[0].split()), made)
    return made + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(text(), encoding="utf-8")
