"""Exported encoders, on onnxruntime or OpenVINO."""
