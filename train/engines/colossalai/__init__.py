"""--engine colossalai: the engine, the plug-ins with which it trains, and workarounds for ColossalAI.

Its declaration is config/engine_colossalai.py.
"""
