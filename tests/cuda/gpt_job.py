"""A small GPT in a job for GPUs, and the text that it learns."""
TEXT = "To be, or not to be, that is the question.\n" * 40


def gpt_job(layers=1, width=16, context=8, micro_batches=4, clip_norm=1):
    return f"""
job:
  model: {{gpt: {{layers: {layers}, heads: 2, width: {width}, dropout: 0.1}}}}
  data: {{train: {{text: {{path: text.txt, context: {context}}}}}}}
  batch_size: {micro_batches}
  micro_batches: {micro_batches}
  steps: 4
  seed: 3
  optimizer: {{adamw: {{weight_decay: 0.1}}}}
  learning_rate: 0.001
  clip_norm: {clip_norm}
  device: cuda
  checkpoint: never
"""


def write_gpt(folder, name="job.yaml", **sizes):
    """The job, with its text beside it."""
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    (folder / name).write_text(gpt_job(**sizes), encoding="utf-8")
