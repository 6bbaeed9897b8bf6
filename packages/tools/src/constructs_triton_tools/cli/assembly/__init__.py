"""Commands that read what `cdk synth` wrote, without calling AWS."""
