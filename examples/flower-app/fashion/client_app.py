"""What a client does."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fashion.task import Net, load_training
from fashion.task import train as train_net

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train the model on the images of this client."""
    net = Net()
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    loader = load_training(
        int(context.node_config["partition-id"]),
        int(context.node_config["num-partitions"]),
        int(context.run_config["batch-size"]),
        bool(context.run_config["shuffle"]),
    )
    loss = train_net(
        net,
        loader,
        int(context.run_config["local-epochs"]),
        float(context.run_config["learning-rate"]),
    )
    metrics = MetricRecord({"train_loss": loss, "num-examples": len(loader.dataset)})
    content = RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=message)
