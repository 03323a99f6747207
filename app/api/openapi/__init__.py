"""The OpenAPI 3.1 document of the gateway, made of its routes and of marshmallow schemas.

    routes      GET /openapi.json, which makes it when it is asked for first
    document    routes → paths, schemas → components
    operations  which schemas a route has, in requests and answers
    requests    schemas of Ollama's requests, whose fields are checked one by one
    answers     schemas of what the gateway answers itself
    errors      what can go wrong, from the one table of errors
"""
