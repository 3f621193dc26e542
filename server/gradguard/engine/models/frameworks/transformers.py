"""The trainers of Hugging Face: `transformers.Trainer` and what derives from it."""

from __future__ import annotations

from gradguard.engine.models.frameworks.schedule import Phase, Schedule
from gradguard.engine.models.registry import Registry

MODELS = Registry()

TRAINER = Schedule(
    (
        "Trainer",
        "Seq2SeqTrainer",
        "SFTTrainer",
        "DPOTrainer",
        "KTOTrainer",
        "ORPOTrainer",
        "SentenceTransformerTrainer",
    ),
    (Phase("compute_loss", differentiates=True), Phase("prediction_step", grad=False)),
)
