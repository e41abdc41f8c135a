"""Tiny random language models with a tiny tokenizer, made on the spot: folders as save_pretrained writes them."""

from __future__ import annotations

from pathlib import Path

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }} <end> {% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
TEXT = "how do i bake bread pick a lock please tell me about the weather in town sorry cannot help with that sure"
WORDS = TEXT.split()


def make_language_model(
    folder: Path, architecture: str = "llama", *, template: str | None = TEMPLATE, seed: int = 0
) -> Path:
    """A random two-block model in `folder`: "llama" and "qwen2" (rotary positions) or "gpt2" (a table of positions)."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import (
        GPT2Config,
        GPT2LMHeadModel,
        LlamaConfig,
        LlamaForCausalLM,
        PreTrainedTokenizerFast,
        Qwen2Config,
        Qwen2ForCausalLM,
    )

    special = ["<pad>", "<unk>", "<end>", "<user>", "<assistant>", "<system>"]
    vocabulary = {word: k for k, word in enumerate([*special, *dict.fromkeys(WORDS)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", eos_token="<end>", chat_template=template
    )
    torch.manual_seed(seed)
    sizes = {
        "vocab_size": len(vocabulary),
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "initializer_range": 0.4,
    }
    if architecture == "gpt2":
        config = GPT2Config(
            vocab_size=len(vocabulary), n_embd=16, n_layer=2, n_head=2, n_positions=64, initializer_range=0.4
        )
        model = GPT2LMHeadModel(config)
    elif architecture == "qwen2":
        model = Qwen2ForCausalLM(Qwen2Config(**sizes))
    else:
        model = LlamaForCausalLM(LlamaConfig(**sizes))
    model.generation_config.eos_token_id = fast.eos_token_id
    model.generation_config.pad_token_id = fast.pad_token_id
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder
