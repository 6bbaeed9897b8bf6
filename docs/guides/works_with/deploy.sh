version=$(python download.py scorer champion)
constructs-triton model new downloaded/model.onnx --name scorer
[ "$version" = 1 ] || mv models/scorer/1 "models/scorer/$version"
constructs-triton check models
