echo tokenizers > models/requirements.txt
cat > models/triton-models.toml <<'END'
[python_environments]
tokenizer = { requirements = "requirements.txt", image_version = "26.05" }
END
constructs-triton env build models/requirements.txt --image-version 26.05
constructs-triton check models
