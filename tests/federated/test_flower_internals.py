"""What is used of Flower without being public."""

from gradveil.federated.flower import Message, MessageType, RecordDict
from gradveil.federated.flower_internals import RUN_NUMBER, make_run, number_message


def test_a_run_lets_this_process_make_messages() -> None:
    assert make_run().run_id == RUN_NUMBER
    message = Message(RecordDict(), 7, MessageType.TRAIN)
    number_message(message, "12")
    reply = Message(RecordDict(), reply_to=message)
    assert (message.metadata.run_id, reply.metadata.reply_to_message_id) == (RUN_NUMBER, "12")
    assert reply.metadata.src_node_id == 7
