import json
import time
from pathlib import Path

import boto3
from sagemaker.core.resources import ProcessingJob
from sagemaker.core.utils.code_injection.codec import transform

(job,) = json.loads(Path("job.json").read_text())["jobs"]
s3 = boto3.client("s3")
for uri, upload in job["uploads"].items():
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    content = (
        upload["text"].encode()
        if "text" in upload
        else Path(upload["path"]).read_bytes()
    )
    s3.put_object(Bucket=bucket, Key=key, Body=content)

running = ProcessingJob.create(
    **transform(job["request"], "CreateProcessingJobRequest")
)
while running.processing_job_status in ("InProgress", "Stopping"):
    time.sleep(5)
    running.refresh()
print(running.processing_job_status, running.exit_message)

output = job["request"]["ProcessingOutputConfig"]["Outputs"][0]["S3Output"]["S3Uri"]
bucket, _, prefix = output.removeprefix("s3://").partition("/")
s3.download_file(bucket, f"{prefix}/model.plan", "model.plan")
