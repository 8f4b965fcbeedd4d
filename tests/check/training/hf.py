"""Trains a language model with transformers."""

from datasets import load_dataset
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("gpt2")
arguments = TrainingArguments(output_dir="out", per_device_train_batch_size=4, dataloader_num_workers=8)
Trainer(model, arguments, train_dataset=load_dataset("wikitext", "wikitext-2-raw-v1")["train"]).train()
