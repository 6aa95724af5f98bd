"""How long a search will take at most, from a short probe on this machine."""

from gradveil.data import DataSet
from gradveil.machine import Estimate, threads, time_call
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.scores import find_quadrature
from gradveil.search.jobs import make_inputs
from gradveil.search.scoring_model import prepare_model
from gradveil.search.settings import SearchSettings
from gradveil.training import Checkpoint, estimate_training
from gradveil.transforms import parse_policy

PROBED = "3-1-7"
PROBED_IMAGES = 4


def estimate_search(settings: SearchSettings, data: DataSet, checkpoint: Checkpoint | None, workers: int) -> Estimate:
    """Count what a search scores if no policy drops out early, and time it; racing takes far less."""
    spec = ModelSpec(settings.model, data.shape, data.classes, data.mean, data.std)
    training = Estimate({}, 0.0)
    if checkpoint is None:
        network = spec.build(generator(settings.seed, "model"))
        checkpoint = Checkpoint(dict(network.state_dict()), spec, {})
        assert settings.training is not None
        training = estimate_training(network, data, settings.training, (), settings.seed, settings.device)
    with threads(1):
        inputs = make_inputs(settings, data, prepare_model(checkpoint, settings.seed))
        score, policy = inputs.privacy_score(settings.rule), parse_policy(PROBED)
        places = range(min(PROBED_IMAGES, settings.images))
        privacy = time_call(lambda: score.score(policy, places)) / len(places)
        accuracy = time_call(lambda: list(inputs.accuracy_score.batch_scores(policy)), 1)
    each = privacy * settings.images + accuracy
    gradients = settings.candidates * settings.images * len(find_quadrature(settings.rule).nodes)
    counts = {"candidates": settings.candidates, "gradients": gradients, **training.counts}
    notes = (
        ()
        if settings.strategy == "random"
        else ("Candidates that fall behind are dropped early: it may end much sooner.",)
    )
    return Estimate(counts, training.seconds + settings.candidates * each / max(1, workers), notes)
