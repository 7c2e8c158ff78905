"""The collector: reports over HTTP, validated whole, committed durably, then acknowledged.

    POST ─ ingest ─ body ─ catalogue (validate) ─ writer (group commit) ─ store ─ 202

`app.Collector` puts the parts together; `server.serve` listens.
"""
