"""The collector: receive reports over HTTP, validate and commit them, then acknowledge them.

    POST ─ upload_route ─ body ─ catalogue (validate) ─ writer (group commit) ─ store ─ 202

`app.Collector` is the application; `server.serve` listens.
"""
