"""A causal language model for the exporter: what it makes of prompts, tokens, vectors and answers.

`hidden_states` as transformers counts them: 0 is the embedding, k the residual stream after block k, and the last one
is after the final norm as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from refusal_core import limits
from refusal_core.chats import Turn
from refusal_core.classifier.encode import is_out_of_memory
from refusal_core.errors import InputError, WorkError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CONVENTION = "hidden_states of transformers: 0 embedding, k after block k, the last one after the final norm"
LAST, MEAN, MEAN_RESPONSE = "last-token", "mean", "mean-response"
POOLINGS = (LAST, MEAN, MEAN_RESPONSE)


@dataclass(frozen=True)
class Tokens:
    """Input ids of one row; the first `prompt` of them are the prompt with its template."""

    ids: tuple[int, ...]
    prompt: int


class LanguageModel:
    """`layers` is how many hidden states it has (blocks + 1), `dimensions` their width, `longest` its longest input."""

    def __init__(
        self, name: str, digest: str, revision: str | None, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
    ) -> None:
        self.name, self.digest, self.revision = name, digest, revision
        self._model, self.tokenizer = model.eval(), tokenizer
        self.precision = str(model.dtype).removeprefix("torch.")
        config = model.config.get_text_config()
        self.layers, self.dimensions = config.num_hidden_layers + 1, config.hidden_size
        positions = getattr(config, "max_position_embeddings", None)
        self.longest = min(positions if positions and positions > 0 else limits.MAX_TOKENS, limits.MAX_TOKENS)
        self._positions = "position_ids" in inspect.signature(model.base_model.forward).parameters
        known = (tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
        self._pad = next(token for token in known if token is not None)
        self.alone = False  # each row by itself, since padding changes its numbers

    @property
    def description(self) -> str:
        """Name and what pins it: the hub's commit, or a digest of the files."""
        return f"{self.name}@{self.revision}" if self.revision else f"{self.name} (sha256 {self.digest[:12]})"

    def check_template(self) -> None:
        """Raise InputError when there is no chat template."""
        if not self.tokenizer.chat_template:
            raise InputError(
                "its tokenizer has no chat template",
                where=self.name,
                why="a prompt is read as the model was trained to read it",
                fix="name an instruct model, or give --no-template to feed prompts as they are",
            )

    def tokens(self, turns: Sequence[Turn], response: str | None, *, system: str | None, template: bool) -> Tokens:
        """The input of one row. A response follows what the template writes before an answer, without an end of turn.

        Raises InputError when the template cannot write these turns.
        """
        if template:
            messages = [{"role": turn.role, "content": turn.text} for turn in turns]
            if system is not None:
                messages = [{"role": "system", "content": system}, *messages]
            prompt = self.tokenizer(self._templated(messages), add_special_tokens=False)["input_ids"]
        else:
            text = "\n\n".join(part for part in (system, *(turn.text for turn in turns)) if part)
            prompt = self.tokenizer(text, add_special_tokens=True)["input_ids"]
        own = self.tokenizer(response, add_special_tokens=False)["input_ids"] if response else []
        return Tokens((*prompt, *own), len(prompt))

    def _templated(self, messages: list[dict]) -> str:
        try:
            return self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except Exception as problem:  # templates are programs and raise what they like
            raise InputError(f"the chat template cannot write it ({type(problem).__name__}: {problem})") from None

    def vectors(self, rows: Sequence[Tokens], layers: Sequence[int], pooling: str) -> np.ndarray:
        """float32 [rows, layers, dimensions], of rows that go through the model together."""
        if self.alone and len(rows) > 1:
            return np.concatenate([self.vectors([row], layers, pooling) for row in rows])
        import torch

        ids, mask = self._padded(rows)
        with torch.inference_mode(), _out_of_memory():
            arguments = {"input_ids": ids, "attention_mask": mask, "output_hidden_states": True, "use_cache": False}
            if self._positions:  # counted from each row's own first token, wherever the padding puts it
                arguments["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)
            states = self._model.base_model(**arguments).hidden_states
            if len(states) != self.layers:
                raise InputError(
                    f"it gives {len(states)} hidden states, its config says {self.layers - 1} blocks",
                    where=self.name,
                    why="then a layer's number is ambiguous",
                    fix="use another architecture",
                )
            weights = self._weights(rows, mask, pooling)
            picked = [torch.einsum("bt,btd->bd", weights, self._valid(states[layer], mask)) for layer in layers]
            return torch.stack(picked, 1).cpu().numpy()

    def responses(self, rows: Sequence[Tokens], most: int) -> list[str]:
        """The greedy continuation of each row, up to `most` tokens, without special tokens."""
        import torch

        ids, mask = self._padded(rows)
        with torch.inference_mode(), _out_of_memory():
            found = self._model.generate(
                input_ids=ids, attention_mask=mask, max_new_tokens=most, do_sample=False, pad_token_id=self._pad,
                temperature=None, top_p=None, top_k=None,
            )  # fmt: skip
        return [
            text.strip() for text in self.tokenizer.batch_decode(found[:, ids.shape[1] :], skip_special_tokens=True)
        ]

    def check_padding(self, rows: Sequence[Tokens]) -> str | None:
        """Compare the shortest row beside the longest with the shortest alone; a note when padding changes it.

        From then on each row goes alone. Attention that ignores the mask, or a recurrence, would put padding into the
        numbers without a word.
        """
        short, long = min(rows, key=lambda row: len(row.ids)), max(rows, key=lambda row: len(row.ids))
        if len(short.ids) == len(long.ids):
            return None
        layers = range(self.layers)
        together, by_itself = self.vectors([short, long], layers, MEAN)[0], self.vectors([short], layers, MEAN)[0]
        off = np.linalg.norm(together - by_itself, axis=1) / np.maximum(np.linalg.norm(by_itself, axis=1), 1e-12)
        if off.max() <= (1e-3 if self.precision == "float32" else 0.05):  # half precision rounds by batch
            return None
        self.alone = True
        return f"Padding changes this model's numbers by up to {off.max():.1%}, so every row went through it alone."

    def _padded(self, rows: Sequence[Tokens]) -> tuple[torch.Tensor, torch.Tensor]:
        """Input ids and mask [rows, longest], padded on the left."""
        import torch

        longest = max(len(row.ids) for row in rows)
        ids = torch.full((len(rows), longest), self._pad, dtype=torch.long)
        mask = torch.zeros((len(rows), longest), dtype=torch.long)
        for place, row in enumerate(rows):
            ids[place, longest - len(row.ids) :] = torch.tensor(row.ids, dtype=torch.long)
            mask[place, longest - len(row.ids) :] = 1
        return ids.to(self._model.device), mask.to(self._model.device)

    @staticmethod
    def _weights(rows: Sequence[Tokens], mask: torch.Tensor, pooling: str) -> torch.Tensor:
        """float32 [rows, tokens], each row adding up to 1."""
        import torch

        if pooling == LAST:
            weights = torch.zeros(mask.shape)
            weights[:, -1] = 1.0
            return weights.to(mask.device)
        weights = mask.float()
        if pooling == MEAN_RESPONSE:
            for place, row in enumerate(rows):
                weights[place, : mask.shape[1] - (len(row.ids) - row.prompt)] = 0.0
        return weights / weights.sum(1, keepdim=True)

    @staticmethod
    def _valid(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """float32 states with zeros where there is padding: some attention leaves NaN there."""
        return states.float().masked_fill(mask[:, :, None] == 0, 0.0)


class _out_of_memory:  # noqa: N801
    """Turns a lack of memory into one sentence."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if problem is not None and is_out_of_memory(problem):
            raise WorkError(
                "Not enough memory for one batch; give a smaller --batch-size or --max-length."
            ) from problem
