constructs-triton model new exported/model.onnx --name encoder --max-batch-size 32
constructs-triton model new tokenizer.py --max-batch-size 32 \
    --input text:BYTES:1 --output input_ids:INT64:-1 \
    --output attention_mask:INT64:-1 --output token_type_ids:INT64:-1
cp exported/tokenizer.json models/tokenizer/1/
constructs-triton model new pool.py --max-batch-size 32 \
    --input last_hidden_state:FP32:-1,384 --input attention_mask:INT64:-1 \
    --output embedding:FP32:384
constructs-triton model new --backend ensemble embeddings \
    --step tokenizer --step encoder --step pool
